#include "coordinator/stacks/unwind.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "coordinator/stacks/source_line.h"

enum { SOURCE_SIZE = 64 };

struct wlb_modules {
	Dwfl *dwfl;
	pid_t pid;
	bool is_attached;
	const struct wlb_capture *capture; /* that is unwound; NULL: none is */
};

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Opens a mapped file as the process sees it, which may be in a container. Returns -1 where it is no plain file. */
static int open_mapped(pid_t pid, const char *path)
{
	char whole[4352];
	struct stat facts;
	if (snprintf(whole, sizeof(whole), "/proc/%d/root%s", (int)pid, path) >= (int)sizeof(whole))
		return -1;
	int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Where the file is not there any more, libdw reads what is mapped of it. */
static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
	const struct wlb_modules *modules = *data;
	int fd = name[0] == '/' && modules != NULL ? open_mapped(modules->pid, name) : -1;
	return fd >= 0 ? fd : dwfl_linux_proc_find_elf(module, data, name, base, file, elf);
}

/* Separate debug information is not looked for: it may be large, or have to be fetched from a server. */
static int find_no_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
                              const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
	return -1;
}

/* ---- what libdw asks of the thread ------------------------------------------------------------------------------- */

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
	const struct wlb_modules *modules = context;
	(void)dwfl;
	if (*thread != NULL)
		return 0;
	*thread = context;
	return modules->capture->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
	const struct wlb_modules *modules = context;
	(void)dwfl;
	*thread = context;
	return tid == modules->capture->tid;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
	const struct wlb_modules *modules = context;
	const struct wlb_capture *capture = modules->capture;
	struct iovec to = {word, sizeof(*word)}, from = {(void *)(uintptr_t)address, sizeof(*word)};
	uint64_t offset = address - capture->stack_at;
	(void)dwfl;
	if (address >= capture->stack_at && capture->stack_bytes >= sizeof(*word) &&
	    offset <= capture->stack_bytes - sizeof(*word)) {
		memcpy(word, capture->stack + offset, sizeof(*word));
		return true;
	}
	return process_vm_readv(capture->pid, &to, 1, &from, 1, 0) == (ssize_t)sizeof(*word);
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct wlb_modules *modules = context;
	uint64_t values[WLB_CAPTURE_REGISTERS];
	Dwarf_Word words[WLB_CAPTURE_REGISTERS];
	int count = wlb_capture_registers(modules->capture, values);
	for (int i = 0; i < count; i++)
		words[i] = values[i];
	dwfl_thread_state_register_pc(thread, wlb_capture_counter(modules->capture));
	return dwfl_thread_state_registers(thread, 0, (unsigned)count, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* ---- modules ----------------------------------------------------------------------------------------------------- */

/* find_elf() finds the process by this. */
static int set_context(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr start, void *context)
{
	(void)module, (void)name, (void)start;
	*data = context;
	return DWARF_CB_OK;
}

struct wlb_modules *wlb_modules_open(pid_t pid)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = find_elf, .find_debuginfo = find_no_debug_file};
	struct wlb_modules *modules = calloc(1, sizeof(*modules));
	if (modules == NULL)
		return NULL;
	modules->pid = pid;
	modules->dwfl = dwfl_begin(&callbacks);
	if (modules->dwfl == NULL || dwfl_linux_proc_report(modules->dwfl, pid) != 0 ||
	    dwfl_report_end(modules->dwfl, NULL, NULL) != 0) {
		wlb_modules_close(modules);
		return NULL;
	}
	dwfl_getmodules(modules->dwfl, set_context, modules, 0);
	return modules;
}

void wlb_modules_close(struct wlb_modules *modules)
{
	if (modules == NULL)
		return;
	if (modules->dwfl != NULL)
		dwfl_end(modules->dwfl);
	free(modules);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

struct frames {
	struct wlb_modules *modules;
	struct wlb_frame_names *names;
	const char **list;
	int count;
};

static const char *name_frame(struct frames *frames, Dwarf_Addr counter, Dwarf_Addr of_call)
{
	char source[SOURCE_SIZE];
	Dwarf_Addr start = 0;
	GElf_Off offset = 0;
	GElf_Sym symbol;
	Dwfl_Module *module = dwfl_addrmodule(frames->modules->dwfl, of_call);
	if (module == NULL)
		return wlb_frame_name(frames->names, &(struct wlb_frame){.offset = counter});
	const char *path = dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
	struct wlb_frame frame = {.module = path, .offset = counter - start};
	const char *known = wlb_frame_name_known(frames->names, &frame);
	if (known != NULL)
		return known;
	frame.function = dwfl_module_addrinfo(module, of_call, &offset, &symbol, NULL, NULL, NULL);
	frame.function_offset = offset + (counter - of_call);
	if (wlb_source_line(module, of_call, source, sizeof(source)))
		frame.source = source;
	return wlb_frame_name(frames->names, &frame);
}

static int take_frame(Dwfl_Frame *state, void *context)
{
	struct frames *frames = context;
	Dwarf_Addr counter;
	bool is_activation = false;
	if (!dwfl_frame_pc(state, &counter, &is_activation))
		return DWARF_CB_ABORT;
	/* The return address of a call that is the last of its function is in the next function. */
	const char *name = name_frame(frames, counter, is_activation ? counter : counter - 1);
	if (name == NULL)
		return DWARF_CB_ABORT;
	frames->list[frames->count++] = name;
	return frames->count < WLB_FRAMES_MAX ? DWARF_CB_OK : DWARF_CB_ABORT;
}

int wlb_modules_unwind(struct wlb_modules *modules, const struct wlb_capture *capture, struct wlb_frame_names *names,
                       const char *frames[WLB_FRAMES_MAX])
{
	struct frames taken = {modules, names, frames, 0};
	modules->capture = capture;
	if (!modules->is_attached)
		modules->is_attached = dwfl_attach_state(modules->dwfl, NULL, capture->pid, &thread_callbacks, modules);
	if (modules->is_attached)
		dwfl_getthread_frames(modules->dwfl, capture->tid, take_frame, &taken);
	modules->capture = NULL;
	return taken.count;
}
