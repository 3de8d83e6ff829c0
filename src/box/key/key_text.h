/*
 * What a client sends as its key: "bnk_" or "e2b_" and a body. Only a hash of the body is kept. The
 * mark is a name of the text that tells nothing about it: tokens carry it, so that they end with
 * the text they were made for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KEY_HASH_SIZE 32
#define KEY_TEXT_SIZE 64
#define KEY_MARK_SIZE (16 + 1)

/* A new random one, to be shown once. */
void key_text_generate(char out[KEY_TEXT_SIZE]);
/* Returns false if no key looks like this. */
bool key_text_hash(const char *text, uint8_t hash[KEY_HASH_SIZE]);
void key_text_mark(const uint8_t hash[KEY_HASH_SIZE], char out[KEY_MARK_SIZE]);
