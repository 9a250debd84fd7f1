/*
 * The files that Slurm's PMIx plugin has on a node for a step: its socket in the spool directory of slurmd, the
 * directory of the PMIx server beside it, and the directory of the tasks, under TmpFS. Nothing here calls Slurm.
 *
 * For the defect that stale_pmix.h names, in Slurm 22.05 to 26.05; not ended as of 26.05.
 */
#ifndef SPANK_WORKAROUNDS_PMIX_FILES_H
#define SPANK_WORKAROUNDS_PMIX_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wlb_pmix_files {
	char socket[PATH_MAX];
	char server_dir[PATH_MAX]; /* beside the socket: only root can create or rename it */
	char tasks_dir[PATH_MAX];  /* the job's user can replace it by anything */
};

/* Finds the spool directory and the name of the node from a socket of this process that is bound to
 * SPOOL/NODE_JOB.STEP, as every slurmstepd has one; both have `size` bytes. Returns false if there is none. */
bool wlb_pmix_files_find_spool(uint32_t job_id, uint32_t step_id, char *spool, char *node, size_t size);

/* Whether the socket exists, and no process listens on it. */
bool wlb_pmix_socket_is_stale(const char *socket);

/* Removes all three, that of the tasks as the job's user, within some 20 s. Returns false if one of them may
 * still be there. */
bool wlb_pmix_files_remove(const struct wlb_pmix_files *files, uid_t user, gid_t group);

#endif
