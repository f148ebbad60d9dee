"""What programs need of the machine: compiling, threads, memory, optional libraries."""
