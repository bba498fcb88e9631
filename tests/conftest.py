import os

os.environ["OMP_NUM_THREADS"] = "1"  # tests run side by side: more threads would only wait for each other
