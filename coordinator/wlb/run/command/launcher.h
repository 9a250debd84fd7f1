/*
 * Launchers that start the ranks of one node and are started once on each: torchrun (also as python -m
 * torch.distributed.run or .launch), ft_launcher, accelerate launch, deepspeed. Some of their options depend on the
 * nodes of an attempt. A batch script expands them once, so after a failure they name too many nodes, and perhaps the
 * lost one. These options are replaced for each attempt, among the launcher's own options: before its script, and never
 * in a text for a shell.
 *
 * The rank of a node differs from task to task. torchrun and ft_launcher take it from PET_NODE_RANK, which the plugin
 * sets. accelerate and deepspeed take it from an option alone, so sh puts SLURM_PROCID there: it is the rank of the
 * node, since a node has one task. A function of words and facts, no I/O.
 */
#ifndef COORDINATOR_WLB_RUN_COMMAND_LAUNCHER_H
#define COORDINATOR_WLB_RUN_COMMAND_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "libwlb/wlb.h"

enum wlb_launcher_kind { WLB_LAUNCHER_NONE, WLB_LAUNCHER_TORCHRUN, WLB_LAUNCHER_ACCELERATE, WLB_LAUNCHER_DEEPSPEED };

struct wlb_launcher {
	enum wlb_launcher_kind kind;
	const char *name;                         /* "accelerate launch"; static */
	const struct wlb_launcher_syntax *syntax; /* of its options */
	int program;                              /* the word of its program, behind wrappers such as numactl */
	int first;                                /* the word of its first option */
	int script;                               /* the first word that is none of its options */
	int unknown; /* the word of an option that is not known, so that the script is not found; -1: none */
};

struct wlb_launcher_facts {
	int nodes;           /* of the attempt */
	int first_nodes;     /* that the job began with, for which totals in the command are */
	int gpus_per_node;   /* 0: none, or not known */
	const char *id;      /* of the rendezvous, another one for each attempt */
	const char *address; /* of the node that has rank 0 */
	int port;            /* likewise */
};

/* Finds the launcher of a command, which ends with NULL; false where it has none. */
bool wlb_launcher_find(char *const *words, struct wlb_launcher *launcher);

/* Finds how many processes the launcher starts on each node. Returns -1 with value, rule and remedy where the command
 * does not say so. */
int wlb_launcher_processes(char *const *words, const struct wlb_launcher *launcher,
                           const struct wlb_launcher_facts *facts, int *count, struct wlb_error *error);

/* Makes the command of an attempt: *made receives its words, ended by NULL, which wlb_launcher_free frees. Where an
 * option is not known they are those of the command. Returns -1 with value, rule and remedy where the launcher cannot
 * be started so. */
int wlb_launcher_rewrite(char *const *words, const struct wlb_launcher *launcher,
                         const struct wlb_launcher_facts *facts, char ***made, struct wlb_error *error);
void wlb_launcher_free(char **made);

/* Writes the words as one line that a shell would read as the same words, shortened where there is no room. */
void wlb_launcher_line(char *const *words, char *line, size_t size);

#endif
