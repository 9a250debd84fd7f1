/* Runs wlb-worker's training, with the same arguments, on the disk of slow_disk.c. */
#include "worker/train/train.h"

int main(int argc, char **argv)
{
	return wlb_train(argc, argv);
}
