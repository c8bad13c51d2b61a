"""The package's version: that of the libjitc which it was written for."""

VERSION = "0.1.0"
