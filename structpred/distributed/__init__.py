"""Training and prediction over shards of the data, on a cluster of dask.distributed: more data than one machine holds."""

from structpred.distributed.cluster import check_cluster
from structpred.distributed.fit import fit
from structpred.distributed.predict import predict
from structpred.distributed.shards import Shards

__all__ = ["Shards", "check_cluster", "fit", "predict"]
