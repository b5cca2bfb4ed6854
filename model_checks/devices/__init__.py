"""The executor on the emulated device, in small histories, over every order that the device allows."""
