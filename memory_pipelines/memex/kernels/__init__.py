"""Kernels: where the code of an agent runs. `opening.open_kernel` opens one."""
