#include "checks/node/xid.h"

#include <stddef.h>
#include <string.h>

static const struct {
	int number;
	const char *fault;
} faults[] = {
	{46, "stopped processing"},
	{48, "uncorrected memory error"},
	{54, "power cable not connected"},
	{62, "microcontroller halted"},
	{64, "row of memory not remapped"},
	{74, "NVLink error"},
	{79, "fallen off the bus"},
	{94, "uncorrected memory error, contained"},
	{95, "uncorrected memory error, not contained"},
	{110, "security fault"},
	{119, "system processor does not answer"},
	{120, "error of the system processor"},
	{136, "NVLink not trained"},
	{140, "uncorrected memory error"},
	{143, "not initialized"},
	{154, "has to be reset or restarted"},
	{155, "NVLink error"},
	{156, "part of the GPU retired"},
	{158, "does not answer"},
};

enum { RECOVERY_ACTION_CHANGED = 154 };

const char *wlb_xid_fault(int number)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].number == number)
			return faults[i].fault;
	return NULL;
}

static const char *skip(const char *text, const char *word)
{
	size_t length = strlen(word);
	return strncmp(text, word, length) == 0 ? text + length : NULL;
}

/* Parses a number of `least` to `most` digits to the base. Returns what follows it; NULL where there is none. */
static const char *read_digits(const char *text, unsigned base, int least, int most, unsigned *number)
{
	static const char all[] = "0123456789abcdef";
	int digits = 0;
	*number = 0;
	for (; digits < most && *text != '\0'; digits++, text++) {
		const char *digit = memchr(all, *text, base);
		if (digit == NULL)
			break;
		*number = base * *number + (unsigned)(digit - all);
	}
	return digits >= least ? text : NULL;
}

/* "0000:3b:00" */
static const char *read_address(const char *text, struct wlb_pci_address *address)
{
	text = read_digits(text, 16, 4, 8, &address->domain);
	if (text == NULL || *text != ':')
		return NULL;
	text = read_digits(text + 1, 16, 2, 2, &address->bus);
	if (text == NULL || *text != ':')
		return NULL;
	return read_digits(text + 1, 16, 2, 2, &address->device);
}

/* " GPU-I:02", which a GPU with instances (MIG) may have; returns what follows it, or the text itself. */
static const char *skip_instance(const char *text, const char *kind)
{
	unsigned instance;
	const char *after = skip(text, kind);
	after = after != NULL ? read_digits(after, 10, 1, 5, &instance) : NULL;
	return after != NULL ? after : text;
}

/* "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)": nothing has to be done any more. No name
 * of a process, which a line may have as well, is that long. */
static bool says_no_action(const char *text)
{
	const char *change = strstr(text, "GPU recovery action changed from 0x");
	return change != NULL && strstr(change, ") to 0x0 (") != NULL;
}

int wlb_xid_parse(const char *line, struct wlb_xid *xid)
{
	unsigned number;
	const char *text = skip(line, "NVRM: Xid (PCI:");
	text = text != NULL ? read_address(text, &xid->gpu) : NULL;
	if (text == NULL)
		return 0;
	text = skip(skip_instance(skip_instance(text, " GPU-I:"), " GPU-CI:"), "): ");
	text = text != NULL ? read_digits(text, 10, 1, 4, &number) : NULL;
	if (text == NULL || *text != ',' || number == 0)
		return 0;
	xid->number = (int)number;
	xid->meaning = wlb_xid_fault(xid->number) != NULL ? WLB_XID_FAULT : WLB_XID_NO_FAULT;
	if (xid->number == RECOVERY_ACTION_CHANGED && says_no_action(text))
		xid->meaning = WLB_XID_RECOVERED;
	return 1;
}

bool wlb_xid_is_driver_start(const char *line)
{
	return skip(line, "NVRM: loading NVIDIA UNIX") != NULL;
}
