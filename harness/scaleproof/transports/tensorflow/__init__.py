"""Transports `tensorflow-grpc` and `tensorflow-mirrored`, over TensorFlow's own gRPC servers."""
