"""Where the public names of this package are, which are loaded when they are used."""

PLACES: dict[str, str] = {
    "ChainLabeler": "structpred.models.chain.labeler",
    "DecisionModel": "structpred.models.decision.model",
    "DependencyParser": "structpred.models.parser.parser",
    "GaussianProcessLabeler": "structpred.models.kernels.gaussian_process",
    "GraphLabeler": "structpred.models.fields.graph",
    "HierarchicalMultiLabel": "structpred.models.fields.hierarchical",
    "KernelChainLabeler": "structpred.models.kernels.labeler",
    "LatentSVM": "structpred.models.latent",
    "LinearClassifier": "structpred.models.linear.classifier",
    "LinearOrdinal": "structpred.models.linear.ordinal",
    "LinearRegressor": "structpred.models.linear.regressor",
    "MultiLabelMRF": "structpred.models.fields.multilabel",
    "RandomFeatures": "structpred.models.kernels.random_features",
    "RobustSVM": "structpred.models.robust",
    "SemiSupervisedSVM": "structpred.models.semi_supervised",
    "SimilarityFeatures": "structpred.models.linear.similarities",
    "StructuredPredictor": "structpred.models.structured",
    "load": "structpred.models.files",
}
