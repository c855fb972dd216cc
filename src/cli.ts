#!/usr/bin/env node
import './cli/start.js'
