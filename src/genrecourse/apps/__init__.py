"""The command line and the demo: arguments and printing, no logic of their own."""
