"""The console command, `svmbench`."""


def main() -> int:
    """Run the command line."""
    return 0
