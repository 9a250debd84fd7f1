/* What each task is told of the other ranks. */
#include "spank/task_variables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* As one line: "NAME=value", and with "?" after the name where the user's value is kept. */
static void check(struct wlb_task_facts facts, const char *expected)
{
	struct wlb_task_variable variables[WLB_TASK_VARIABLES_MAX];
	char line[1024] = "";
	int count = wlb_task_variables(&facts, variables);
	assert_in_range(count, 1, WLB_TASK_VARIABLES_MAX);
	for (int i = 0; i < count; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s%s=%s", i > 0 ? " " : "",
		         variables[i].name, variables[i].is_kept ? "?" : "", variables[i].value);
	assert_string_equal(line, expected);
}

static void ranks_of_two_nodes(void **state)
{
	(void)state;
	check((struct wlb_task_facts){3, 4, 1, 2, 2, "n1", "30001", "7.1", "", false, "", 0},
	      "RANK=3 WORLD_SIZE?=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE?=2 MASTER_ADDR=n1 MASTER_PORT=30001");
}

static void one_task_a_node_may_be_a_launcher(void **state)
{
	(void)state;
	check((struct wlb_task_facts){1, 2, 0, 1, 2, "n1", "30001", "7.1", "", false, "", 0},
	      "RANK=1 WORLD_SIZE?=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE?=1 MASTER_ADDR=n1 MASTER_PORT=30001 PET_NNODES=2 "
	      "PET_NODE_RANK=1 PET_RDZV_ID=7.1 PET_RDZV_ENDPOINT=n1:30001 PET_MASTER_ADDR=n1 PET_MASTER_PORT=30001");
}

static void a_server_of_the_users_stays(void **state)
{
	(void)state;
	check((struct wlb_task_facts){0, 1, 0, 1, 1, "n1", "30001", "7.1", "", true, "", 0},
	      "RANK=0 WORLD_SIZE?=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE?=1 MASTER_ADDR=n1 MASTER_PORT=30001 PET_NNODES=1 "
	      "PET_NODE_RANK=0 PET_RDZV_ID=7.1 PET_MASTER_ADDR=n1 PET_MASTER_PORT=30001");
}

static void the_command_is_kept(void **state)
{
	(void)state;
	check((struct wlb_task_facts){1, 2, 0, 1, 2, "n1", "30001", "", "", false, "", 0},
	      "RANK=1 WORLD_SIZE?=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE?=1 MASTER_ADDR=n1 MASTER_PORT=30001");
}

static void a_node_has_a_file_of_metrics(void **state)
{
	(void)state;
	check((struct wlb_task_facts){3, 4, 1, 2, 2, "", "", "", "", false, "/s/metrics-7-a-", 1},
	      "RANK=3 WORLD_SIZE?=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE?=2 WLB_METRICS_FILE=/s/metrics-7-a-1.jsonl");
}

static void a_task_has_an_error_file(void **state)
{
	(void)state;
	check((struct wlb_task_facts){3, 4, 1, 2, 2, "n1", "30001", "7.1", "/s/error-7-a-", false, "", 0},
	      "RANK=3 WORLD_SIZE?=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE?=2 MASTER_ADDR=n1 MASTER_PORT=30001 "
	      "TORCHELASTIC_ERROR_FILE?=/s/error-7-a-3.json");
}

static void no_address_is_known(void **state)
{
	(void)state;
	check((struct wlb_task_facts){1, 2, 0, 1, 2, "", "30001", "", "", false, "", 0},
	      "RANK=1 WORLD_SIZE?=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE?=1 MASTER_PORT=30001");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_of_two_nodes),          cmocka_unit_test(one_task_a_node_may_be_a_launcher),
		cmocka_unit_test(a_server_of_the_users_stays), cmocka_unit_test(the_command_is_kept),
		cmocka_unit_test(a_task_has_an_error_file),    cmocka_unit_test(a_node_has_a_file_of_metrics),
		cmocka_unit_test(no_address_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
