"""The subcommands of `akunu`: command NAME is `akunu.cli.commands.NAME.command`."""
