"""The public names of this package: the file of each, loaded when a name is used."""

FILES: dict[str, tuple[str, ...]] = {
    "chain.labeler": ("ChainLabeler",),
    "decision.model": ("DecisionModel",),
    "fields.graph": ("GraphLabeler",),
    "fields.multilabel": ("HierarchicalMultiLabel", "MultiLabelMRF"),
    "files": ("load",),
    "kernels.labeler": ("GaussianProcessLabeler", "KernelChainLabeler"),
    "latent": ("LatentSVM",),
    "linear.classifier": ("LinearClassifier", "LinearOrdinal"),
    "linear.regressor": ("LinearRegressor",),
    "linear.similarities": ("RandomFeatures", "SimilarityFeatures"),
    "parser.parser": ("DependencyParser",),
    "pipeline": ("ParsingPipeline",),
    "robust": ("RobustSVM",),
    "segments": ("SegmentLabeler",),
    "semi_supervised": ("SemiSupervisedSVM",),
    "structured": ("StructuredPredictor",),
}
