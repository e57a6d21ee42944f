"""The command line, the web service and the demo: arguments, printing, HTTP; no logic of their own."""
