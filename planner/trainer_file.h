/* Reads the file of a training program, as in libwlb/trainers: what it overlaps, recomputes and keeps, which kernel of
 * attention it calls, and how fast its products are. */
#ifndef PLANNER_TRAINER_FILE_H
#define PLANNER_TRAINER_FILE_H

#include <stddef.h>

#include "common/options.h"
#include "libwlb/wlb.h"

/* The row of --trainer in a table of options; `field` is the offset of a const char *. */
#define WLB_TRAINER_OPTION(field)                                                                                      \
	.name = "trainer", .kind = WLB_OPTION_TEXT, .offset = (field), .initial = "megatron",                          \
	.choices = "automodel|bigscience|fsdp|internevo|llm-foundry|maxtext|megatron|megatron-2021|nanotron|nemo|"     \
		   "nemo-2022|nemo-2026|pax|torchtitan|torchtitan-eager|transformers|worker",                          \
	.open = true, .value = "NAME|FILE",                                                                            \
	.help = "the program that trains: automodel, bigscience, fsdp, internevo, llm-foundry, maxtext, megatron, "    \
		"megatron-2021, nanotron, nemo, "                                                                      \
		"nemo-2022, nemo-2026, pax, torchtitan, torchtitan-eager, transformers, worker, or a file like those " \
		"of "                                                                                                  \
		"share/wlb/trainers; worker is wlb-worker, for which the options below have no effect, but "           \
	        "--tp-halves"

enum { WLB_TRAINER_MACHINES = 8 };

struct wlb_trainer_file {
	char name[32];
	struct wlb_cost_options cost; /* of worker: its trainer alone, since the machine decides the others */
	char attention[16];           /* a kernel of struct wlb_machine, or "unfused" */
	/* Rates of products over those that the file of a machine has; 1 on others. */
	struct {
		char machine[64];
		double rate;
	} products[WLB_TRAINER_MACHINES];
	int products_count;
};

/* `from` is a file where it ends in ".json", else the name of one in the folder of trainers: WLB_TRAINERS where it is
 * set, else ../share/wlb/trainers from the program's own folder. -1 with the file, field, value and rule, or the names
 * that there are. */
int wlb_trainer_file_read(const char *from, struct wlb_trainer_file *trainer, struct wlb_error *error);

/* Parses the text of such a file. */
int wlb_trainer_file_parse(const char *text, size_t bytes, struct wlb_trainer_file *trainer, struct wlb_error *error);

/* Sets the options of the cost on that machine, and changes the machine's rates of products and attention to those that
 * the program has. `attention` names the kernel instead of the file's; NULL: the file's, and where the machine has
 * no published speed of it, or was measured, the machine's own. Returns -1 where the machine has not the kernel that
 * `attention` names. */
int wlb_trainer_file_apply(const struct wlb_trainer_file *trainer, const char *attention, struct wlb_machine *machine,
                           struct wlb_cost_options *cost, struct wlb_error *error);

#endif
