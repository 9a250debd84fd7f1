#include "coordinator/stacks/process_list.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/proc_stat.h"
#include "coordinator/stacks/thread_state.h"

static int add(struct wlb_process_list *all, int *size, pid_t pid, pid_t parent)
{
	if (all->count == *size) {
		int more = 2 * *size + 256;
		struct wlb_process_entry *list = realloc(all->list, (size_t)more * sizeof(*list));
		if (list == NULL)
			return -1;
		all->list = list;
		*size = more;
	}
	all->list[all->count++] = (struct wlb_process_entry){pid, parent};
	return 0;
}

int wlb_process_list_read(struct wlb_process_list *all)
{
	int size = 0, rc = 0;
	DIR *folder = opendir("/proc");
	*all = (struct wlb_process_list){0};
	if (folder == NULL)
		return -1;
	for (struct dirent *entry; rc == 0 && (entry = readdir(folder)) != NULL;) {
		char path[64], line[WLB_PROC_STAT_SIZE];
		pid_t pid = (pid_t)atoi(entry->d_name);
		if (pid <= 0 || pid == getpid()) /* a process cannot trace itself */
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		const char *parent = wlb_proc_stat_field(path, WLB_PROC_PARENT, line);
		if (parent != NULL)
			rc = add(all, &size, pid, (pid_t)atoi(parent));
	}
	closedir(folder);
	if (rc != 0)
		wlb_process_list_free(all);
	return rc;
}

void wlb_process_list_free(struct wlb_process_list *all)
{
	free(all->list);
	*all = (struct wlb_process_list){0};
}

static int contains(const struct wlb_process_list *all, pid_t pid)
{
	for (int i = 0; i < all->count; i++)
		if (all->list[i].pid == pid)
			return 1;
	return 0;
}

static int waits_for_child(pid_t pid)
{
	long number = wlb_thread_system_call(pid, pid);
	return number == SYS_wait4 || number == SYS_waitid;
}

/* Returns the place in `pids` of the process that trains. Children come after their parents, the eldest first. */
static int find_trainer(const struct wlb_process_list *all, const pid_t *pids, int count)
{
	int trainer = 0;
	for (int i = 0; i < count; i++) {
		pid_t parent = 0;
		for (int k = 0; k < all->count; k++)
			if (all->list[k].pid == pids[i])
				parent = all->list[k].parent;
		if (parent == pids[trainer] && waits_for_child(parent))
			trainer = i;
	}
	return trainer;
}

int wlb_process_list_of_rank(const struct wlb_process_list *all, pid_t pid, pid_t pids[WLB_STACKS_PROCESSES_MAX])
{
	int count = 0;
	if (!contains(all, pid))
		return 0;
	pids[count++] = pid;
	for (int of = 0; of < count; of++)
		for (int i = 0; i < all->count && count < WLB_STACKS_PROCESSES_MAX; i++)
			if (all->list[i].parent == pids[of])
				pids[count++] = all->list[i].pid;
	int trainer = find_trainer(all, pids, count);
	pid_t first = pids[trainer];
	for (; trainer > 0; trainer--)
		pids[trainer] = pids[trainer - 1];
	pids[0] = first;
	return count;
}
