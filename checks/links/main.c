/* wlb-check-links: says which nodes of a job do not reach each other. `wlb check-links` and `wlb run` start it. */
#include "checks/links/check_links.h"

int main(int argc, char **argv)
{
	return wlb_command_main(&wlb_command_check_links, argc, argv);
}
