"""What a trainer that runs another says of itself: what the trainer inside says."""

from collections.abc import Callable

from structpred.core.regulariser import Regulariser
from structpred.trainers.problem import Problem, Surrogate, Trainer


class ByInner:
    """To be named before `Trainer` among the parents of a class with an attribute `trainer`, the trainer inside."""

    trainer: Trainer

    @property
    def requires(self) -> tuple[str | tuple[str, ...], ...]:
        """What it needs of the oracle."""
        return self.trainer.requires

    @property
    def regulariser_requires(self) -> tuple[str | tuple[str, ...], ...]:
        """What it needs of the regulariser."""
        return self.trainer.regulariser_requires

    @property
    def default_regulariser(self) -> type[Regulariser]:
        """The regulariser that it takes where none is named."""
        return self.trainer.default_regulariser

    @property
    def surrogates(self) -> tuple[Callable[[], Surrogate], ...]:
        """What it can minimise."""
        return self.trainer.surrogates

    def minimises(self, surrogate: Surrogate) -> bool:
        """Whether it can minimise this surrogate."""
        return self.trainer.minimises(surrogate)

    def fits(self, regulariser: Regulariser) -> bool:
        """Whether it can minimise this regulariser."""
        return self.trainer.fits(regulariser)

    def certifies(self, surrogate: Surrogate) -> bool:
        """Whether there is a gap with this surrogate."""
        return self.trainer.certifies(surrogate)

    def state_dim(self, problem: Problem) -> int:
        """The number of weights that the indices in its state are about."""
        return self.trainer.state_dim(problem)
