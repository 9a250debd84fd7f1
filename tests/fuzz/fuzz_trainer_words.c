/* Any words of a trainer's command: refused with a message, or settings in range, whose names and those of what was not
 * looked at are in the words. The first byte is the trainer. */
#include <string.h>

#include "planner/trainer_words.h"
#include "tests/fuzz/scratch.h"

enum { WORDS_MAX = 64, TEXT_MAX = 4096 };

static void check_word(char *const *words, int count, const struct wlb_option_word *word)
{
	int found = 0;
	for (int i = 0; i < count; i++)
		found |= word->text == words[i] && word->bytes > 0 && (size_t)word->bytes <= strlen(words[i]);
	must(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[TEXT_MAX + 1], *words[WORDS_MAX + 1], name[64];
	struct wlb_trainer_words read;
	struct wlb_error error = {""};
	if (bytes == 0 || bytes > TEXT_MAX)
		return 0;
	memcpy(text, data + 1, bytes - 1);
	text[bytes - 1] = '\0';
	int variable = strpbrk(text, "$`") != NULL, count = scratch_lines(text, words, WORDS_MAX);
	enum wlb_words_of of = data[0] == 'M'   ? WLB_WORDS_OF_MEGATRON
	                       : data[0] == 'N' ? WLB_WORDS_OF_NEMO
	                                        : WLB_WORDS_OF_TORCHTITAN;
	if (wlb_trainer_words_read(words, of, &read, &error) < 0) {
		must(error.message[0] != '\0');
		return 0;
	}
	must(!variable || count == WORDS_MAX);
	for (int i = 0; i < WLB_SETTINGS; i++) {
		enum wlb_setting setting = (enum wlb_setting)i;
		wlb_trainer_words_option(&read, setting, name, sizeof(name));
		must(strlen(name) < sizeof(name));
		if (!wlb_trainer_words_have(&read, setting))
			continue;
		int64_t value = wlb_trainer_words_value(&read, setting, -1);
		must(value >= 0 && value <= 1 << 30);
		check_word(words, count, &read.settings[i].word);
	}
	for (int i = 0; i < read.unread_count && i < WLB_WORDS_UNREAD_MAX; i++)
		check_word(words, count, &read.unread[i]);
	return 0;
}
