"""Training and prediction over shards of the data, on a cluster of dask.distributed: more data than one machine holds."""

from structpred.distributed.cluster import check_cluster
from structpred.distributed.fit import fit
from structpred.distributed.predict import predict
from structpred.distributed.shards import Shards
from structpred.runtime.moved import leave_behind

__all__ = ["Shards", "check_cluster", "fit", "predict"]
leave_behind(__name__, {__name__: ("outputs:predict", "journal:predict", "parquet:shards", "plans:fit", "cutting:reading")})
