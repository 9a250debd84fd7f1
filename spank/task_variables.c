#include "spank/task_variables.h"

#include <stdarg.h>
#include <stdio.h>

struct list {
	struct wlb_task_variable *variables;
	int count;
};

__attribute__((format(printf, 4, 5))) static void add(struct list *list, const char *name, bool is_kept,
                                                      const char *format, ...)
{
	struct wlb_task_variable *variable = &list->variables[list->count++];
	va_list args;
	variable->name = name;
	variable->is_kept = is_kept;
	va_start(args, format);
	vsnprintf(variable->value, sizeof(variable->value), format, args);
	va_end(args);
}

static void add_meeting(struct list *list, const char *address_name, const char *port_name,
                        const struct wlb_task_facts *facts)
{
	if (facts->address[0] != '\0')
		add(list, address_name, false, "%s", facts->address);
	if (facts->port[0] != '\0')
		add(list, port_name, false, "%s", facts->port);
}

static void add_launchers(struct list *list, const struct wlb_task_facts *facts)
{
	add(list, "PET_NNODES", false, "%d", facts->nodes);
	add(list, "PET_NODE_RANK", false, "%d", facts->rank);
	add(list, "PET_RDZV_ID", false, "%s", facts->rendezvous);
	if (!facts->has_own_server)
		add(list, "PET_RDZV_ENDPOINT", false, "%s:%s", facts->address, facts->port);
	add_meeting(list, "PET_MASTER_ADDR", "PET_MASTER_PORT", facts);
}

/* A value of the script is the same in each task, so that of RANK cannot be meant. */
int wlb_task_variables(const struct wlb_task_facts *facts, struct wlb_task_variable *variables)
{
	struct list list = {.variables = variables};
	add(&list, "RANK", false, "%d", facts->rank);
	add(&list, "WORLD_SIZE", true, "%d", facts->world_size);
	add(&list, "LOCAL_RANK", false, "%d", facts->local_rank);
	add(&list, "LOCAL_WORLD_SIZE", true, "%d", facts->local_world_size);
	add_meeting(&list, "MASTER_ADDR", "MASTER_PORT", facts);
	if (facts->error_files[0] != '\0')
		add(&list, "TORCHELASTIC_ERROR_FILE", true, "%s%d.json", facts->error_files, facts->rank);
	if (facts->metrics_files[0] != '\0')
		add(&list, "WLB_METRICS_FILE", false, "%s%d.jsonl", facts->metrics_files, facts->node);
	if (facts->rendezvous[0] != '\0' && facts->world_size == facts->nodes)
		add_launchers(&list, facts);
	return list.count;
}
