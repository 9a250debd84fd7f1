#include "tests/unit/agent/traced_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define ATTEMPT "6e1b0f3c-3c1e-4c39-9ad5-0d6a3d0c1f11"

void traced_node_open(struct traced_node *node, int ranks)
{
	node->page = wlb_node_page_create(ATTEMPT, ranks, &node->page_fd, NULL);
	assert_non_null(node->page);
	assert_int_equal(wlb_agent_tasks_open(&node->tasks, ranks, NULL), 0);
	for (int i = 0; i < ranks; i++) {
		node->areas[i] = wlb_node_page_take_area(node->page, TRACED_FIRST_RANK + i);
		node->tasks.list[node->tasks.count++] =
			(struct wlb_agent_task){.rank = TRACED_FIRST_RANK + i, .code = -1};
	}
}

void traced_node_close(struct traced_node *node)
{
	wlb_agent_tasks_close(&node->tasks);
	wlb_node_page_close(node->page);
	close(node->page_fd);
}

void assert_body(json_t *body, const char *expected)
{
	char *text = json_dumps(body, JSON_COMPACT);
	assert_string_equal(text, expected);
	free(text);
	json_decref(body);
}
