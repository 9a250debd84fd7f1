/* Slurm's topology, as slurmctld has it. */
#include "coordinator/slurm/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/compat.h"
#include "coordinator/slurm/slurm_api.h"

/* A listing of 100,000 nodes on 4,000 switches has less than a megabyte. */
enum { LISTING_BYTES_MAX = 16 << 20 };

/* The records of 23.11 and later are opaque, so that their printed form is parsed, on all releases. Returns NULL with
 * the reason. */
static char *print_topology(struct wlb_error *error)
{
	topo_info_response_msg_t *reply = NULL;
	char *text = NULL;
	size_t bytes = 0;
	if (wlb_compat_load_topology(&reply) != SLURM_SUCCESS || reply == NULL) {
		wlb_fail(error, "Slurm gives no topology: %s", slurm_strerror(errno));
		return NULL;
	}
	FILE *out = open_memstream(&text, &bytes);
	if (out != NULL) {
		wlb_compat_print_topology(out, reply);
		fclose(out);
	}
	slurm_free_topo_info_msg(reply);
	if (text != NULL && bytes <= LISTING_BYTES_MAX)
		return text;
	free(text);
	wlb_fail(error, text == NULL ? "out of memory for the topology" : "Slurm's topology has more than %d bytes",
	         LISTING_BYTES_MAX);
	return NULL;
}

/* Other plugins (flat, torus) print nothing or something else. */
static int has_switches(const char *text)
{
	return strncmp(text, "SwitchName=", 11) == 0 || strncmp(text, "BlockName=", 10) == 0;
}

int wlb_slurm_topology(struct wlb_topology_file *topology, struct wlb_error *error)
{
	*topology = (struct wlb_topology_file){0};
	char *text = print_topology(error);
	int rc = text == NULL ? -1 : 0;
	if (rc == 0 && has_switches(text))
		rc = wlb_topology_listing_parse(text, topology, error);
	free(text);
	if (rc < 0)
		wlb_topology_file_free(topology);
	return rc < 0 ? wlb_fail_in(error, "topology") : 0;
}
