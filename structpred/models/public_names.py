"""The public names of this package: the file of each, loaded when a name is used."""

FILES: dict[str, tuple[str, ...]] = {
    "chain.labeler": ("ChainLabeler",),
    "decision.model": ("DecisionModel",),
    "fields.graph": ("GraphLabeler",),
    "fields.hierarchical": ("HierarchicalMultiLabel",),
    "fields.multilabel": ("MultiLabelMRF",),
    "files": ("load",),
    "kernels.labeler": ("GaussianProcessLabeler", "KernelChainLabeler"),
    "kernels.random_features": ("RandomFeatures",),
    "latent": ("LatentSVM",),
    "linear.classifier": ("LinearClassifier", "LinearOrdinal"),
    "linear.regressor": ("LinearRegressor",),
    "linear.similarities": ("SimilarityFeatures",),
    "parser.parser": ("DependencyParser",),
    "pipeline": ("ParsingPipeline",),
    "semi_supervised": ("RobustSVM", "SemiSupervisedSVM"),
    "structured": ("StructuredPredictor",),
}
