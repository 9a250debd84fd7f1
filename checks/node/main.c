/* wlb-check-node: says whether a node is healthy. `wlb check-node` starts it. */
#include "checks/node/check_node.h"

int main(int argc, char **argv)
{
	return wlb_command_main(&wlb_command_check_node, argc, argv);
}
