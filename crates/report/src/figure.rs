//! What is drawn, free of how: the only thing a renderer sees.

/// A drawing with two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Unique in a report; `[a-z0-9-]`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The same for somebody who cannot see it, in a sentence or two.
    pub description: String,
    /// Left to right.
    pub x: Axis,
    /// Bottom to top.
    pub y: Axis,
    /// Lines.
    pub series: Vec<Series>,
    /// Areas between a lower and an upper line.
    pub bands: Vec<Band>,
    /// Spans of x, shaded.
    pub spans: Vec<Span>,
    /// What was in force when, above the plot.
    pub lanes: Vec<Lane>,
    /// Moments.
    pub marks: Vec<Mark>,
    /// Heights of interest.
    pub rules: Vec<Rule>,
    /// Values that the y axis does not reach, if there are any.
    pub beyond: Option<Beyond>,
    /// Whether the marks' labels are written above the plot, or only drawn as lines through it.
    pub lane: bool,
    /// Full width of the page, or half of it.
    pub wide: bool,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it counts, with its unit.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// How values are written.
    pub unit: Unit,
    /// The smallest value.
    pub from: f64,
    /// The largest.
    pub to: f64,
}

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm.
    Log,
    /// A share p by −log10(1 − p): 90 %, 99 %, 99.9 % are equally far apart.
    Nines,
}

/// How values of an axis are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds of a trial.
    Seconds,
    /// Nanoseconds, written in the unit that suits.
    Nanoseconds,
    /// Per second.
    Rate,
    /// A share, written as a percentile.
    Percentile,
    /// A share, written in percent.
    Share,
    /// Bits per second.
    Bits,
}

/// A colour by what it stands for on every page; the style sheet says which one that is in light and in dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Of the palette of Okabe and Ito, safe for the colour-blind.
    Blue,
    /// The same.
    Orange,
    /// The same.
    Green,
    /// The same.
    Red,
    /// The same.
    Purple,
    /// The same.
    Sky,
    /// For what is there only for comparison.
    Gray,
}

impl Ink {
    /// Inks for things that have no colour of their own, in order.
    pub const CYCLE: [Ink; 6] = [Ink::Blue, Ink::Orange, Ink::Green, Ink::Purple, Ink::Sky, Ink::Red];

    /// Its class in the style sheet.
    pub fn class(self) -> &'static str {
        match self {
            Ink::Blue => "blue",
            Ink::Orange => "orange",
            Ink::Green => "green",
            Ink::Red => "red",
            Ink::Purple => "purple",
            Ink::Sky => "sky",
            Ink::Gray => "gray",
        }
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// For the legend.
    pub name: String,
    /// Its colour.
    pub ink: Ink,
    /// Dashed: tells lines apart without colour, too.
    pub dashed: bool,
    /// Each value holds this far to the left and to the right of its x, and is drawn as a step; 0 for a plain line.
    pub reach: f64,
    /// From left to right; without a y there is a gap.
    pub points: Vec<(f64, Option<f64>)>,
}

/// An area.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Its colour.
    pub ink: Ink,
    /// x, lower y, upper y.
    pub points: Vec<(f64, f64, f64)>,
}

/// A shaded span of x.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Its name.
    pub label: String,
    /// What it is.
    pub kind: SpanKind,
}

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A phase: named in a strip above the plot.
    Phase,
    /// A fault is in force: shaded through the plot.
    Fault,
    /// The instrument was late: marked at the foot of the plot.
    Late,
}

/// A line above the plot that shows when one thing was there.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// What.
    pub label: String,
    /// When.
    pub bars: Vec<Bar>,
}

/// A stretch of time in which it was there.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// How much of it, 0 to 1.
    pub height: f64,
    /// All of it in words.
    pub text: String,
}

/// A moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// When.
    pub x: f64,
    /// In few words.
    pub label: String,
    /// In full.
    pub text: String,
    /// Whether it is something to worry about.
    pub bad: bool,
}

/// A span of x in which values lie above the plot: they are cut off there, and the cut is marked.
#[derive(Debug, Clone, PartialEq)]
pub struct Beyond {
    /// The first such value.
    pub from: f64,
    /// The last one.
    pub to: f64,
    /// What they are, and how far they reach.
    pub label: String,
}

/// A height of interest.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// How high.
    pub y: f64,
    /// What it is.
    pub label: String,
}
