/*
 * spank_wlb: options in, environment out. This file only dispatches by where the plugin was loaded: sbatch, salloc and
 * srun (submit.c), slurmstepd (remote.c), the job's epilog (delivery.c, workarounds/stuck_stepd.c).
 */
#include "spank/delivery.h"
#include "spank/near_copies.h"
#include "spank/remote.h"
#include "spank/state.h"
#include "spank/state_dir.h"
#include "spank/submit.h"
#include "spank/workarounds/stuck_stepd.h"

SPANK_PLUGIN(wlb, 1);

/* Slurm passes no pointer of ours to callbacks. */
static struct wlb_spank plugin = {.agent.fd = -1};

/* Slurm adds a line that repeats option and value; our line, with rule and example, comes first. In slurmstepd nothing
 * is refused: the value was checked where the option was given. */
static int take_option(int which, const char *value, int remote)
{
	struct wlb_error error;
	if (wlb_spank_options_take(&plugin.options, which, value, !remote, &error) == 0 || remote)
		return 0;
	slurm_error("%s", error.message);
	return -1;
}

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
	wlb_spank_args_parse(argc, argv, &plugin.args);
	switch (spank_context()) {
	case S_CTX_SLURMD: /* once, in the log that an administrator reads */
		wlb_spank_args_report(&plugin.args);
		return 0;
	case S_CTX_ALLOCATOR:
		wlb_allocator_clear_environment();
		wlb_spank_options_register(sp, take_option);
		return 0;
	case S_CTX_LOCAL:
	case S_CTX_REMOTE:
		wlb_spank_options_register(sp, take_option);
		return 0;
	default:
		return 0;
	}
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	switch (spank_context()) {
	case S_CTX_ALLOCATOR:
		return wlb_submit_options(&plugin);
	case S_CTX_LOCAL:
		return wlb_submit_step(&plugin);
	case S_CTX_REMOTE:
		return wlb_remote_init(sp, &plugin);
	default:
		return 0;
	}
}

int slurm_spank_local_user_init(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return wlb_local_user_init(sp, &plugin);
}

int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return wlb_remote_user_init(sp, &plugin);
}

int slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return wlb_remote_task_init(sp, &plugin);
}

int slurm_spank_task_post_fork(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return wlb_remote_task_forked(sp, &plugin);
}

int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return wlb_remote_task_exited(sp, &plugin);
}

int slurm_spank_exit(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	wlb_spank_agent_end(&plugin.agent);
	return 0;
}

/* Ends slurmstepds of the job that are stuck. */
static void end_stuck_stepds(spank_t sp)
{
	uint32_t job_id = 0;
	FILE *note = spank_get_item(sp, S_JOB_ID, &job_id) == ESPANK_SUCCESS
	                     ? wlb_state_note_take(&plugin.args, job_id, WLB_STATE_STEPDS)
	                     : NULL;
	if (note == NULL)
		return;
	if (plugin.args.end_stuck_stepd)
		wlb_stuck_stepd_end(job_id, note);
	fclose(note);
}

/* Always returns 0: an epilog that fails drains the node. Slurm does not call slurm_spank_init before. */
int slurm_spank_job_epilog(spank_t sp, int argc, char **argv)
{
	wlb_spank_args_parse(argc, argv, &plugin.args);
	wlb_delivery_start(sp, &plugin.args);
	end_stuck_stepds(sp);
	wlb_near_copies_remove(sp);
	return 0;
}
