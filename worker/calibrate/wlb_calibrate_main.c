/* wlb-calibrate: measures the nodes of a job. `wlb calibrate` starts it. */
#include "worker/calibrate/calibrate.h"

int main(int argc, char **argv)
{
	return wlb_command_main(&wlb_command_calibrate, argc, argv);
}
