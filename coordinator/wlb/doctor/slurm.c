#include "coordinator/wlb/doctor/slurm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/child_output.h"

/* Writes "25.11" for "25.11.7". */
static void format_series(const char *version, char *text, size_t size)
{
	const char *dot = strchr(version, '.');
	dot = dot != NULL ? strchr(dot + 1, '.') : NULL;
	int length = dot != NULL ? (int)(dot - version) : (int)strcspn(version, " \n");
	snprintf(text, size, "%.*s", length, version);
}

static void check_version(struct wlb_doctor *doctor)
{
	char output[256], running[16], built[16];
	if (wlb_output_of_program((char *[]){"sinfo", "--version", NULL}, output, sizeof(output)) != 0) {
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "version", "install Slurm's client commands or correct PATH",
		                "sinfo cannot be run");
		return;
	}
	const char *version = strchr(output, ' ');
	format_series(version != NULL ? version + 1 : output, running, sizeof(running));
	format_series(WLB_SLURM_VERSION, built, sizeof(built));
	output[strcspn(output, "\n")] = '\0';
	if (strcmp(running, built) == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "version", "", "%s, as WLB was built for", output);
	else
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "version", "install the WLB built for this Slurm series",
		                "%s, but WLB was built for " WLB_SLURM_VERSION, output);
}

static void check_nodes(struct wlb_doctor *doctor)
{
	struct wlb_slurm_node *nodes = NULL;
	struct wlb_error error;
	int count = 0, down = 0;
	if (wlb_slurm_nodes(&nodes, &count, &error) != 0) {
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "slurm", "check 'scontrol ping'", "%s", error.message);
		return;
	}
	for (int i = 0; i < count; i++)
		down += nodes[i].down || !nodes[i].responds;
	free(nodes);
	if (down > 0)
		wlb_doctor_note(doctor, down == count ? WLB_FINDING_FAIL : WLB_FINDING_WARN, "slurm",
		                "'sinfo -R' prints the reasons", "%d of %d nodes are down", down, count);
	else
		wlb_doctor_note(doctor, WLB_FINDING_OK, "slurm", "", "slurmctld answers, %d nodes", count);
}

enum { SAYS_REMEDY = 2 };

static int open_slurm(void)
{
	struct wlb_error error;
	if (wlb_slurm_open(&error) == 0)
		return 0;
	fputs(error.message, stderr);
	return SAYS_REMEDY;
}

/* libslurm ends the process where it cannot read its configuration, so another process tries first. */
static bool can_open_slurm(struct wlb_doctor *doctor)
{
	char output[4096];
	int code = wlb_output_of_function(open_slurm, output, sizeof(output));
	for (char *end = output; (end = strchr(end, '\n')) != NULL;)
		*end = end[1] != '\0' ? ' ' : '\0';
	if (code != 0)
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "slurm",
		                code == SAYS_REMEDY
		                        ? ""
		                        : "install this cluster's slurm.conf as /etc/slurm/slurm.conf or set "
		                          "SLURM_CONF to it",
		                "%s", output[0] != '\0' ? output : "libslurm finds no slurm.conf within 10 s");
	return code == 0;
}

void wlb_doctor_slurm(struct wlb_doctor *doctor)
{
	struct wlb_error error;
	if (!can_open_slurm(doctor) || wlb_slurm_open(&error) != 0) {
		/* Each of Slurm's commands would search for its configuration for a minute. */
		doctor->without_slurm = true;
		return;
	}
	check_version(doctor);
	check_nodes(doctor);
}

/* Writes the version that the plugin has in the help of its options, as in "wlb-0.2.0:"; "" for one that has none. */
static void read_plugin_version(const char *help, char *version, size_t size)
{
	static const char before[] = "wlb-";
	const char *word = strstr(help, before);
	while (word != NULL && !isdigit((unsigned char)word[strlen(before)]))
		word = strstr(word + 1, before);
	word = word != NULL ? word + strlen(before) : "";
	snprintf(version, size, "%.*s", (int)strspn(word, "0123456789."), word);
}

static void check_plugin_version(struct wlb_doctor *doctor, const char *help)
{
	char version[32];
	read_plugin_version(help, version, sizeof(version));
	if (strcmp(version, WLB_VERSION) == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "plugin", "", "srun knows --wlb-layout, of wlb-" WLB_VERSION);
	else
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "plugin", "install the same version everywhere",
		                "the plugin has version %s, this is " WLB_VERSION,
		                version[0] != '\0' ? version : "unknown");
}

void wlb_doctor_plugin(struct wlb_doctor *doctor)
{
	static const char remedy[] =
		"add 'optional spank_wlb.so coordinator=HOST:PORT' to plugstack.conf beside slurm.conf";
	static char output[65536];
	int code = wlb_output_of_program((char *[]){"srun", "--help", NULL}, output, sizeof(output));
	const char *line = strstr(output, "spank_wlb");
	if (strstr(output, "--wlb-layout") != NULL)
		check_plugin_version(doctor, strstr(output, "--wlb-layout"));
	else if (line != NULL && strstr(output, "ncompatible") != NULL)
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "plugin", "install the WLB built for this Slurm series",
		                "the plugin is of another Slurm release: %.*s", (int)strcspn(line, "\n"), line);
	else if (line != NULL)
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "plugin", remedy, "%.*s", (int)strcspn(line, "\n"), line);
	else if (code < 0)
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "plugin", "install Slurm's client commands or correct PATH",
		                "srun cannot be run");
	else
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "plugin", remedy, "srun does not know --wlb-layout");
}

void wlb_doctor_pmix(struct wlb_doctor *doctor)
{
	char output[4096];
	wlb_output_of_program((char *[]){"srun", "--mpi=list", NULL}, output, sizeof(output));
	if (strstr(output, "pmix") != NULL)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "pmix", "", "srun has the PMIx plugin");
	else
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "pmix",
		                "install mpi_pmix (Debian: slurm-wlm-basic-plugins and libpmix-dev)",
		                "srun --mpi=list has no pmix");
}

/* Reads what slurmctld and its plugins are configured as. Returns -1 with a finding on `what` where that fails. */
static int read_config(struct wlb_doctor *doctor, const char *what, char *output, size_t size)
{
	if (wlb_output_of_program((char *[]){"scontrol", "show", "config", NULL}, output, size) == 0)
		return 0;
	wlb_doctor_note(doctor, WLB_FINDING_WARN, what, "check 'scontrol show config'",
	                "the cluster's configuration cannot be read");
	return -1;
}

/* Returns the rest of the text from the value on; "": it has no such setting. */
static const char *value_of(const char *config, const char *setting)
{
	const char *line = strstr(config, setting);
	const char *value = line != NULL ? strchr(line, '=') : NULL;
	return value != NULL ? value + strspn(value, "= ") : "";
}

/* The fence of Slurm's PMIx plugin returns early if its tree is wider than the step has nodes. */
void wlb_doctor_fence(struct wlb_doctor *doctor)
{
	static char config[65536];
	const char *ours = getenv("SLURM_PMIX_FENCE");
	if (read_config(doctor, "fence", config, sizeof(config)) != 0)
		return;
	if (strncmp(value_of(config, "PMIxCollFence"), "ring", 4) == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "fence", "", "mpi.conf has PMIxCollFence=ring");
	else if (atoi(value_of(config, "TreeWidth")) == 2)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "fence", "", "TreeWidth is 2");
	else if (ours != NULL && strcmp(ours, "ring") == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "fence", "", "SLURM_PMIX_FENCE=ring is set here");
	else
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "fence",
		                "put PMIxCollFence=ring into mpi.conf beside slurm.conf",
		                "'wlb run' works around Slurm's early PMIx fence, a plain srun does not");
}

/* wlbd sets a lost node DOWN with a reason of its own, and Slurm then uses it again by itself only where it does so
 * whatever the reason is. */
void wlb_doctor_lost_nodes(struct wlb_doctor *doctor)
{
	static char config[65536];
	if (read_config(doctor, "lost nodes", config, sizeof(config)) != 0)
		return;
	int value = atoi(value_of(config, "ReturnToService"));
	if (value == 2)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "lost nodes", "",
		                "ReturnToService is 2: Slurm uses lost nodes again once they respond");
	else
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "lost nodes",
		                "'scontrol update nodename=NODE state=resume', or ReturnToService=2 in slurm.conf",
		                "ReturnToService is %d: a lost node stays DOWN when it responds again, so that "
		                "--wlb-grow cannot use it",
		                value);
}

/* The PMIx plugin decides which of two nodes connects to the other by comparing a number among the job's nodes with one
 * among the step's (docs/slurm-versions.md). */
void wlb_doctor_two_nodes(struct wlb_doctor *doctor)
{
	const char *nodes = getenv("SLURM_JOB_NODELIST");
	char **names = NULL;
	int count = 0;
	if (nodes != NULL && wlb_hostlist_expand(nodes, &names, &count, NULL) != 0)
		count = 0;
	wlb_strings_free(names, count);
	if (count > 2)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "two nodes",
		                "before a plain srun on two of them: unset SLURM_JOB_NODELIST",
		                "PMIx may hang until PMIxTimeout on two of these %d nodes; 'wlb run' works around it",
		                count);
	else
		wlb_doctor_note(doctor, WLB_FINDING_OK, "two nodes", "",
		                "this is no job of three nodes or more, where PMIx may hang on two of them");
}
