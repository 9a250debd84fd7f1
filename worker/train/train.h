#ifndef WORKER_TRAIN_TRAIN_H
#define WORKER_TRAIN_TRAIN_H

/* `wlb-worker train`: argv[0] is "train". Returns the exit code (docs/trainers.md). */
int wlb_train(int argc, char **argv);

#endif
