"""Judge pair after pair in a model folder, until this process is killed.

``python kill_absorbing.py FOLDER START``: pairs from START on, the number of each is
printed when it is in the store.
"""

import sys

from judged_models import BETWEEN
from linkspread.cli.model_folder import ModelFolder

if __name__ == "__main__":
    folder = ModelFolder(sys.argv[1])
    model = folder.load()
    for k in range(int(sys.argv[2]), 300):
        folder.keep_pairs([(f"t{24 + k % 16}", f"i{k // 16}", 1.0)], BETWEEN, who="ann")
        print(k, flush=True)
        folder.absorb(model)
