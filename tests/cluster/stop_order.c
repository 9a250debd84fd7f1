/*
 * Preloaded into wlbd: its process stops (SIGSTOP) between its own look at the lease and an order to Slurm to set a
 * node DOWN, if the file $WLB_TEST_STOP is there, which is removed. $WLB_TEST_ORDERS receives a line with its pid and
 * "stops", and one with "orders" when the order is really given.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <slurm/slurm.h>

static void note(const char *word)
{
	int fd = open(getenv("WLB_TEST_ORDERS"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	dprintf(fd, "%d %s\n", getpid(), word);
	close(fd);
}

int slurm_update_node(update_node_msg_t *update)
{
	int (*original)(update_node_msg_t *) = (int (*)(update_node_msg_t *))dlsym(RTLD_NEXT, "slurm_update_node");
	if (unlink(getenv("WLB_TEST_STOP")) == 0) {
		note("stops");
		raise(SIGSTOP);
	}
	note("orders");
	return original(update);
}
