#include "spank/workarounds/stale_pmix.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "coordinator/slurm/compat.h"
#include "spank/workarounds/pmix_files.h"

/* Replaces %n by the node's name and %h by the host's, as slurmd does. Returns false if it does not fit. */
static bool expand(const char *pattern, const char *node, char *path, size_t size)
{
	char host[256] = "";
	size_t used = 0;
	gethostname(host, sizeof(host) - 1);
	for (const char *at = pattern; *at != '\0'; at++) {
		bool is_name = at[0] == '%' && (at[1] == 'n' || at[1] == 'h');
		const char *part = !is_name ? at : at[1] == 'n' ? node : host;
		size_t length = is_name ? strlen(part) : 1;
		if (used + length >= size)
			return false;
		memcpy(path + used, part, length);
		used += length;
		at += is_name;
	}
	path[used] = '\0';
	return used > 0;
}

/* An entry of slurm_conf_t.mpi_conf: config_key_pair_t of Slurm 22.05 to 26.05, which not every slurm.h declares. */
struct key_pair {
	char *name;
	char *value;
};

/* Returns the value of the key in mpi.conf, which is the list's; NULL if it has none. */
static const char *find_mpi_value(const slurm_conf_t *conf, const char *key)
{
	const char *value = NULL;
	if (conf->mpi_conf == NULL)
		return NULL;
	void *entries = slurm_list_iterator_create(conf->mpi_conf);
	for (const struct key_pair *entry; (entry = slurm_list_next(entries)) != NULL;)
		if (entry->name != NULL && strcmp(entry->name, key) == 0)
			value = entry->value;
	slurm_list_iterator_destroy(entries);
	return value != NULL && value[0] == '/' ? value : NULL;
}

/* Finds where the plugin has its directories of tasks: the job's environment, mpi.conf, or TmpFS. */
static bool find_tasks_base(spank_t sp, const char *node, char *base, size_t size)
{
	slurm_conf_t *conf = NULL;
	if (spank_getenv(sp, "SLURM_PMIX_TMPDIR", base, (int)size) == ESPANK_SUCCESS && base[0] == '/')
		return true;
	if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
		return false;
	const char *given = find_mpi_value(conf, "PMIxCliTmpDirBase");
	bool fits = given != NULL ? (size_t)snprintf(base, size, "%s", given) < size
	                          : expand(conf->tmp_fs != NULL ? conf->tmp_fs : "/tmp", node, base, size);
	wlb_compat_free_conf(conf);
	return fits;
}

void wlb_stale_pmix_clear(spank_t sp)
{
	struct wlb_pmix_files files;
	char spool[PATH_MAX / 2], node[PATH_MAX / 2], base[PATH_MAX / 2];
	uint32_t job_id = 0, step_id = 0;
	uid_t user = 0;
	gid_t group = 0;
	if (spank_get_item(sp, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_UID, &user) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &group) != ESPANK_SUCCESS || step_id > SLURM_MAX_NORMAL_STEP_ID ||
	    !wlb_pmix_files_find_spool(job_id, step_id, spool, node, sizeof(spool)))
		return;
	snprintf(files.socket, sizeof(files.socket), "%s/stepd.slurm.pmix.%u.%u", spool, job_id, step_id);
	if (!wlb_pmix_socket_is_stale(files.socket))
		return;
	if (!find_tasks_base(sp, node, base, sizeof(base))) {
		slurm_error("wlb: %s is of a slurmstepd that was killed, and Slurm does not tell its TmpFS: this step "
		            "may fail to launch",
		            files.socket);
		return;
	}
	snprintf(files.server_dir, sizeof(files.server_dir), "%s/pmix.%u.%u", spool, job_id, step_id);
	snprintf(files.tasks_dir, sizeof(files.tasks_dir), "%s/spmix_appdir_%u_%u.%u", base, (unsigned)user, job_id,
	         step_id);
	if (wlb_pmix_files_remove(&files, user, group))
		slurm_info("wlb: removed what a killed slurmstepd had left of PMIx for step %u.%u", job_id, step_id);
	else
		slurm_error("wlb: cannot remove what a killed slurmstepd has left: remove %s, %s and %s, or this step "
		            "fails to launch",
		            files.socket, files.server_dir, files.tasks_dir);
}
