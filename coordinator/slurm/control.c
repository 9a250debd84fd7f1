/* Opens libslurm and reads slurm.conf. */
#include "coordinator/slurm/compat.h"
#include "coordinator/slurm/slurm_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int wlb_slurm_open(struct wlb_error *error)
{
	/* slurm_init ends the process if it cannot read its configuration: fail with a clearer message if we can detect
	 * that. */
	const char *path = getenv("SLURM_CONF");
	if (path && access(path, R_OK) != 0)
		return wlb_fail(error, "SLURM_CONF=%s: %s; it must name a readable slurm.conf", path, strerror(errno));
	slurm_init(NULL);
	return 0;
}

void wlb_slurm_close(void)
{
	slurm_fini();
}

uid_t wlb_slurm_user(void)
{
	slurm_conf_t *conf = NULL;
	if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
		return (uid_t)-1;
	uid_t uid = conf->slurm_user_id;
	wlb_compat_free_conf(conf);
	return uid;
}

/* Finds "KEY   = value" among the lines of `scontrol show config`. */
static bool find_value(const char *config, const char *key, char *value, size_t size)
{
	size_t length = strlen(key);
	for (const char *line = config; *line != '\0';) {
		size_t line_length = strcspn(line, "\n");
		const char *after = line + length;
		if (line_length > length && strncmp(line, key, length) == 0) {
			after += strspn(after, " ");
			if (strncmp(after, "= ", 2) == 0 && after > line + length) {
				snprintf(value, size, "%.*s", (int)(line + line_length - after - 2), after + 2);
				return true;
			}
		}
		line += line_length + (line[line_length] == '\n');
	}
	return false;
}

/* Slurm's list of key and value pairs is opaque, so its printed form is parsed. */
bool wlb_slurm_config(const char *key, char *value, size_t size)
{
	slurm_conf_t *conf = NULL;
	if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
		return false;
	char *printed = NULL;
	size_t printed_size = 0;
	FILE *out = open_memstream(&printed, &printed_size);
	if (out) {
		slurm_print_ctl_conf(out, conf);
		fclose(out);
	}
	wlb_compat_free_conf(conf);
	bool found = printed && find_value(printed, key, value, size);
	free(printed);
	return found;
}
