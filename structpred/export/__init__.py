"""Programs for deployment: one Python file and its weights, which need NumPy alone and predict what the model does."""

from structpred.export.programs import Exported, export_predictor

__all__ = ["Exported", "export_predictor"]
