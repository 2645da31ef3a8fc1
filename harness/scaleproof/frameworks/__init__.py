"""Frameworks that compute a network: PyTorch and TensorFlow."""
