"""Likelihoods of padded batches, over any oracle, as an operator of PyTorch that can be differentiated in every way."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError
from structpred.torch.modules import check_some


class PaddedOracle:
    """(scores (B, p), truth (B, T) or (B, 0), kept (B, T), sizes) -> log p of the truth, or 1 / Z; marginals; its part counts.

    kept: which positions there are. sizes: what the oracle depends on. places: (positions, T, sizes) -> the shape, where in a row
    of scores its parts are, of them how many for each position, in front, and what labels 0, 1, ... are called. log_z: sizes ->
    None for derivatives of marginals by central differences, or (scores, kept, sizes) -> log Z by PyTorch, but for a constant.
    """

    def __init__(self, name: str, oracle: Any, places: Any, log_z: Callable[[list[int]], Any] = lambda sizes: None) -> None:
        self._oracle, self._places, self._log_z = oracle, places, log_z
        self.operator = torch.library.custom_op(f"structpred::{name}", self._found, mutates_args=())
        self.operator.register_fake(lambda x, *_: (x.new_empty(x.shape[:1]), torch.empty_like(x), torch.empty_like(x)))
        self.operator.register_autograd(self._back, setup_context=_keep)
        # the same for the transforms of torch.func, which know no derivatives of operators (torch 2.13)
        calls: dict[str, Any] = {"forward": lambda *own: self.operator(*own), "setup_context": _keep, "backward": self._back}
        body = {"generate_vmap_rule": True, **{key: staticmethod(call) for key, call in calls.items()}}
        self._function: Any = type(name, (torch.autograd.Function,), body)

    def __call__(self, *given: Any) -> Any:
        """What the operator gives, differentiable in every way."""
        return self.operator(*given) if torch.compiler.is_compiling() else self._function.apply(*given)

    def best(self, scores: Tensor, kept: Tensor, sizes: list[int]) -> list[list[int]]:
        """The best output of each sentence."""
        oracle, found = self._oracle(sizes), list[list[int]]([[] for _ in kept])
        for i, _, theta, shape, _, names in self._sentences(scores, kept, sizes):
            labels = oracle.argmax(theta.clip(FORBIDDEN), shape)
            if theta[oracle.parts(labels, shape)].min() <= 0.5 * FORBIDDEN:
                raise InfeasibleError(f"sentence {i}: every {oracle.output} uses a forbidden part (-inf)")
            found[i] = names[labels].tolist()
        return found

    def _found(self, scores: Tensor, truth: Tensor, kept: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        oracle, given, form = self._oracle(sizes), truth.numpy(force=True), tuple(scores.shape)
        if given.size and len(given) > 1:  # vmap over sentences asks for one at a time, of which some may be empty
            check_some(kept.numpy(force=True))
        value, mu, counts = np.zeros(form[0]), np.zeros(form), np.zeros(form)
        for i, there, theta, shape, where, names in self._sentences(scores, kept, sizes):
            labels = given[i, there] if given.shape[1] else given[i]
            known = np.searchsorted(names, labels).clip(max=len(names) - 1)
            for t in np.flatnonzero(names[known] != labels)[:1]:
                raise DataError(f"sentence {i}, position {there[t]}: {labels[t]} is none of those there, {names[0]}..{names[-1]}")
            try:
                log_z, mu[i, where] = oracle.marginals(theta.clip(FORBIDDEN), shape)
                parts = oracle.parts(known, shape) if len(labels) else known
            except ValueError as error:
                kind = InfeasibleError if isinstance(error, InfeasibleError) else DataError
                raise kind(f"sentence {i}: {str(error).removeprefix('sample 0: ')}") from error
            counts[i] = np.bincount(where[parts], minlength=form[1])
            value[i] = theta[parts].sum() - log_z
        likelihoods, marginals, of_truth = (torch.from_numpy(own).to(scores.device, scores.dtype) for own in (value, mu, counts))
        return likelihoods, marginals, of_truth

    def _sentences(self, scores: Tensor, kept: Tensor, sizes: list[int]) -> Iterator[tuple[Any, ...]]:
        """Number, positions, part scores, shape, places and names of labels of each sentence that has positions."""
        numbers = scores.numpy(force=True).astype(np.float64)
        for i, there in enumerate(map(np.flatnonzero, kept.numpy(force=True))):
            if len(there):
                shape, where, width, names = self._places(there, kept.shape[1], sizes)
                theta = numbers[i, where]
                if not theta.max() < np.inf:
                    for k in np.flatnonzero(~(theta[: len(there) * width] < np.inf))[-1:] // width:
                        raise DataError(f"sentence {i}, position {there[k]}: a score is NaN or infinite (only -inf forbids)")
                yield i, there, theta, shape, where, names

    def _back(self, ctx: Any, by_value: Tensor | None, by_mu: Tensor | None, _: Tensor | None) -> Any:
        """Counts less marginals, which autograd knows how to differentiate again; their own pull-back where they were used."""
        (scores, kept, mu, counts), sizes, log_z = ctx.saved_tensors, ctx.sizes, self._log_z(ctx.sizes)
        found = torch.zeros_like(mu) if by_value is None else by_value[:, None] * (counts - mu)
        if by_mu is not None and log_z is not None:
            slope = torch.func.grad(lambda own: log_z(own.clamp(min=FORBIDDEN), kept, sizes).sum())
            found = found + torch.func.grad(lambda own: (slope(own) * by_mu).sum())(scores)
        elif by_mu is not None and scores.numel():
            theta, along = scores.double(), by_mu.double()
            step = 1e-5 / along.detach().abs().amax(1, keepdim=True).clamp(min=1e-30)
            ahead, behind = (self(theta + own * along, kept[:, :0], kept, sizes)[1] for own in (step, -step))
            found = found + ((ahead - behind) / (2.0 * step)).to(found.dtype)
        return found, None, None, None


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    scores, _, kept, ctx.sizes = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(scores, kept, *output[1:])
