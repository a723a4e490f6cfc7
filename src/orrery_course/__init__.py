"""The course beside the program: its labs, and the tables of its lectures; nobody else needs them."""
