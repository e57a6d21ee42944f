"""A conditional-subspace VAE: w contains what separates the outcomes, z everything else.

    x_free ~ p(. | w, z, x_given),  w ~ N(centre_y, I),  z ~ N(0, I)
    w ~ q(. | x, y),  z ~ q(. | x)

Klys, Snell & Zemel, "Learning Latent Subspaces in Variational Autoencoders", NeurIPS 2018. An
adversary q(y | z) learns to predict the outcome from z, and z learns to prevent that:

    min over the VAE  -log p(x | w, z) + KL(w) + KL(z) - independence * H[q(y | z)]
    min over q(y | z) -log q(y | z)

Here both losses are one sum, in which each part gets no gradient from the other, so one loop trains
both. The adversary weighs the two outcomes equally: if z contains no information, its answer is one
half, where the entropy H is highest.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from genrecourse.methods._vae import (
    Layout,
    RowDecoder,
    VAEConfig,
    divergence,
    draw,
    make_net,
)

N_RELEVANT = 2  # dimensions of w
APART = 1.5  # centre_y is this far from 0 in each dimension, with the sign of the outcome
ADVERSARY = (64, 64)


class SubspaceVAE(nn.Module):
    """q(w | x, y), q(z | x), p(x_free | w, z, x_given) and the adversary q(y | z)."""

    def __init__(
        self, config: VAEConfig, layout: Layout, width: int, *, independence: float = 10.0
    ):
        super().__init__()
        self.independence = independence
        self.encoder_w = make_net(width + 1, config.hidden, 2 * N_RELEVANT)
        self.encoder_z = make_net(width, config.hidden, 2 * config.n_latent)
        self.decoder = RowDecoder(N_RELEVANT + config.n_latent, config.hidden, layout)
        self.adversary = make_net(config.n_latent, ADVERSARY, 1)

    def encode(self, Z: Tensor, y: Tensor) -> Tensor:
        """Return (n, w and z) the means; y: 1.0 if the outcome is favourable."""
        w, z = self._posteriors(Z, y)
        return torch.cat([w[0], z[0]], dim=1)

    def decode(self, codes: Tensor, Z: Tensor) -> Tensor:
        """Return relaxed rows (n, D) with the immutable features of Z."""
        return self.decoder(codes, Z)

    def _posteriors(self, Z: Tensor, y: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        of_w = self.encoder_w(torch.cat([Z, y[:, None]], dim=1)).chunk(2, dim=1)
        return of_w, self.encoder_z(Z).chunk(2, dim=1)

    def loss(
        self, kl_weight: float, generator: torch.Generator, Z: Tensor, y: Tensor, weight: Tensor
    ) -> Tensor:
        """Return the mean loss. weight: balances the outcomes for the adversary; its mean is 1."""
        (mean_w, log_var_w), (mean_z, log_var_z) = self._posteriors(Z, y)
        w, z = draw(mean_w, log_var_w, generator), draw(mean_z, log_var_z, generator)
        centre = APART * (2 * y[:, None] - 1)
        bound = self.decoder.neg_log_prob(torch.cat([w, z], dim=1), Z)
        kl = divergence(mean_w, log_var_w, centre) + divergence(mean_z, log_var_z)
        still = {name: p.detach() for name, p in self.adversary.named_parameters()}
        hidden = entropy(functional_call(self.adversary, still, (z,))[:, 0])
        adversary_loss = binary_cross_entropy_with_logits(
            self.adversary(z.detach())[:, 0], y, reduction="none"
        )
        total = (
            bound + kl_weight * kl - self.independence * hidden * weight + weight * adversary_loss
        )
        return total.mean()


def entropy(logits: Tensor) -> Tensor:
    """Return the entropy of a coin with these logits, in nats."""
    return softplus(logits) - logits * torch.sigmoid(logits)
