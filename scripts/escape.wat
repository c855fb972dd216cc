;; Escapes text for JSON, 16 bytes at a time. src/tap/escape.ts has it as base64, made by: wat2wasm escape.wat -o - | base64
(module
  (memory (export "memory") 1)
  ;; Escapes $length bytes at $from for a JSON string, to $to; returns the position after them. May write 15 bytes more.
  (func (export "escape") (param $from i32) (param $length i32) (param $to i32) (result i32)
    (local $end i32) (local $bytes v128) (local $mask i32) (local $clean i32) (local $byte i32)
    (local.set $end (i32.add (local.get $from) (local.get $length)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
        (local.set $bytes (v128.load (local.get $from)))
        (v128.store (local.get $to) (local.get $bytes))
        (local.set $mask
          (i8x16.bitmask
            (v128.or
              (i8x16.lt_u (local.get $bytes) (i8x16.splat (i32.const 0x20)))
              (v128.or
                (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x22)))
                (i8x16.eq (local.get $bytes) (i8x16.splat (i32.const 0x5c)))))))
        (if (i32.eqz (local.get $mask))
          (then
            (local.set $from (i32.add (local.get $from) (i32.const 16)))
            (local.set $to (i32.add (local.get $to) (i32.const 16)))
            (br $next)))
        (local.set $clean (i32.ctz (local.get $mask)))
        (local.set $from (i32.add (local.get $from) (local.get $clean)))
        (local.set $to (i32.add (local.get $to) (local.get $clean)))
        (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $from)))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (if (i32.or
              (i32.ge_u (local.get $byte) (i32.const 0x20))
              (i32.eq (local.get $byte) (i32.const 0x0a)))
          (then
            ;; \" \\ and \n
            (if (i32.eq (local.get $byte) (i32.const 0x0a)) (then (local.set $byte (i32.const 0x6e))))
            (i32.store16 (local.get $to)
              (i32.or (i32.const 0x5c) (i32.shl (local.get $byte) (i32.const 8))))
            (local.set $to (i32.add (local.get $to) (i32.const 2))))
          (else
            ;; \u00XX
            (i32.store (local.get $to) (i32.const 0x3030755c))
            (i32.store8 offset=4 (local.get $to)
              (i32.add (i32.const 0x30) (i32.shr_u (local.get $byte) (i32.const 4))))
            (local.set $byte (i32.and (local.get $byte) (i32.const 15)))
            (i32.store8 offset=5 (local.get $to)
              (i32.add (local.get $byte)
                (select (i32.const 0x57) (i32.const 0x30) (i32.ge_u (local.get $byte) (i32.const 10)))))
            (local.set $to (i32.add (local.get $to) (i32.const 6)))))
        (br $next)))
    ;; The last 16 bytes may reach beyond the end.
    (i32.sub (local.get $to) (i32.sub (local.get $from) (local.get $end)))))
