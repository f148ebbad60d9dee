"""What is minimised: part losses, and surrogates that turn an oracle's answer into a step and a value."""

from structpred.runtime.moved import leave_behind

leave_behind(__name__, {__name__: ("latent_hinge:margin", "marginal_log_loss:log_loss", "regret:part_losses")})
