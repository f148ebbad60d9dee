"""A mistyped command, or value of an option, is answered with the one that may have been meant."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from structpred.text.suggestions import did_you_mean, synonym

Makers = Callable[[click.Context], Mapping[str, Callable[[], click.Command]]]


class SuggestingGroup(click.Group):
    """A group that makes its commands when they are used, and answers an unknown one with the nearest known one, or with all.

    makers: (a context) -> the commands by name, each as what makes it.
    """

    def __init__(self, *args: Any, makers: Makers, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.makers = makers

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(self.makers(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        maker = self.makers(ctx).get(cmd_name)
        return None if maker is None else maker()

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first argument. Raises UsageError for an unknown one."""
        name, known = args[0], self.list_commands(ctx)
        if not name.startswith("-") and name not in known:
            hint = did_you_mean(name, known) or f"; say which: {', '.join(known)}"
            raise click.UsageError(f"there is no command {name!r} of {ctx.command_path!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class Choice(click.Choice[str]):
    """One of some names; the error for another name suggests the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name. Raises BadParameter for an unknown one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = synonym(str(getattr(param, "name", "")), value) or did_you_mean(str(value), self.choices)
            raise click.BadParameter(error.message.rstrip(".") + hint, ctx, param) from None
