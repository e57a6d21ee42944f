"""The command line, the web service and the demo: arguments, printing, HTTP and no logic."""
