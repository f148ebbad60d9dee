"""The contracts of oracles, feature maps, losses and regularisers: checks that explain every violation in plain words."""
