"""The command line: parser, commands, set-up, doctor, and the generator of the reference."""
