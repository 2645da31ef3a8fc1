"""A remote machine as a device with a memory (xue2019): how tensors are placed in it, over any one-sided transport."""
