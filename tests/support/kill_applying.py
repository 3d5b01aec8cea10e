"""Judge pair after pair in a model folder, until this process is killed.

``python kill_applying.py FOLDER START``: pairs from START on, the number of each is
printed when it is in the store.
"""

import sys

from judged_models import BETWEEN
from linkspread import ModelFolder

if __name__ == "__main__":
    folder = ModelFolder(sys.argv[1])
    for k in range(int(sys.argv[2]), 300):
        pair = (f"t{24 + k % 16}", f"i{k // 16}", 1.0)
        folder.judge_pairs([pair], between=BETWEEN, who="ann")
        print(k, flush=True)
        folder.apply()
